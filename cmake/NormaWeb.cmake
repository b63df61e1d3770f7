# web/*.{css,js} (and those of its folders) as arrays in one C file, so that pages need no installed files.
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*.css ${PROJECT_SOURCE_DIR}/web/*.js)
set(norma_web ${PROJECT_BINARY_DIR}/generated/norma_web.c)
add_custom_command(OUTPUT ${norma_web}
	COMMAND ${CMAKE_COMMAND} -D "OUT=${norma_web}" -D "FILES=${web_files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
	DEPENDS ${web_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
