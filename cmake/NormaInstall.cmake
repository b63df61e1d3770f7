# Headers, libraries in float and in double, the command, pkg-config file, CMake package, man pages, completion.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/norma)

install(DIRECTORY include/norma DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/norma/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/norma)
install(TARGETS norma_shared norma_static EXPORT norma-targets
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS norma64_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS norma-check64 RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/norma)
install(EXPORT norma-targets NAMESPACE norma:: DESTINATION ${package_dir})
install(DIRECTORY recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/norma)
if(TARGET norma)
	install(TARGETS norma RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/norma-config.cmake.in norma-config.cmake INSTALL_DESTINATION ${package_dir}
	NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(norma-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/norma-config.cmake ${PROJECT_BINARY_DIR}/norma-config-version.cmake
	DESTINATION ${package_dir})

# The prefix is found from the .pc file's own place, so that the tree may be moved.
file(RELATIVE_PATH NORMA_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" NORMA_PC_PREFIX "${NORMA_PC_PREFIX}")
list(TRANSFORM NORMA_STATIC_LIBS PREPEND "-l" OUTPUT_VARIABLE NORMA_PC_PRIVATE)
list(JOIN NORMA_PC_PRIVATE " " NORMA_PC_PRIVATE)
set(NORMA_PC_NAME norma)
configure_file(cmake/norma.pc.in norma.pc @ONLY)
set(NORMA_PC_NAME norma64)
set(NORMA_PC_CFLAGS " -DNR_DOUBLE")
set(NORMA_PC_PRIVATE "")
configure_file(cmake/norma.pc.in norma64.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/norma.pc ${PROJECT_BINARY_DIR}/norma64.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(NORMA_MAN)
	install(DIRECTORY ${man_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1" PATTERN source EXCLUDE)
	if(completion)
		set(share ${CMAKE_INSTALL_DATADIR})
		install(FILES ${PROJECT_BINARY_DIR}/norma.bash DESTINATION ${share}/bash-completion/completions RENAME norma)
		install(FILES ${PROJECT_BINARY_DIR}/norma.zsh DESTINATION ${share}/zsh/site-functions RENAME _norma)
		install(FILES ${PROJECT_BINARY_DIR}/norma.fish DESTINATION ${share}/fish/vendor_completions.d)
	endif()
endif()
