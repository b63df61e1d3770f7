# libnorma, shared and static, from one set of objects; libnorma64 (real = double) for tests and `norma check`.
set(layers base draw math fetch picture token chem record graph nn data optim norms models plugin infer surgery train analysis laws tasks
	check study report serve)
set(sources)
foreach(layer IN LISTS layers)
	file(GLOB_RECURSE found CONFIGURE_DEPENDS src/${layer}/*.c)
	list(APPEND sources ${found})
endforeach()
include(NormaWeb)           # norma_web: the pages' styles and scripts
list(APPEND sources ${norma_web})
file(GLOB_RECURSE fast_sources CONFIGURE_DEPENDS src/math/fast/*.c)
if(fast_sources)
	list(REMOVE_ITEM sources ${fast_sources})
endif()

# What our own programs and tests see beyond the installed headers.
add_library(norma_internal INTERFACE)
target_include_directories(norma_internal INTERFACE
	${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(norma_internal INTERFACE norma_flags)

function(norma_objects name)
	add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
	target_link_libraries(${name} PRIVATE norma_internal)
endfunction()

norma_objects(norma_objects ${sources})
target_link_libraries(norma_objects PRIVATE norma_deps)
if(NORMA_EMULATE)
	target_compile_definitions(norma_objects PRIVATE NR_EMULATED)
endif()
set(objects $<TARGET_OBJECTS:norma_objects>)

# src/math/fast is compiled once per instruction set of src/math/sets.def; all else is for the baseline, chosen at run time. Emulated, it
# is compiled for the baseline too, on SIMDe (src/math/fast/emulated.h). Fuzzers read files and have the plain kernels alone.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/math/sets.def)
set(processor ${CMAKE_SYSTEM_PROCESSOR})
if(processor MATCHES "^(AMD64|amd64)$")
	set(processor x86_64)
endif()
file(READ src/math/sets.def sets)
string(REGEX MATCHALL "\nSET\\(${processor}, [^,]*, [^,]*," sets "${sets}")
if(NORMA_FUZZ)
	set(sets)
endif()
set(NORMA_SETS plain)
foreach(line IN LISTS sets)
	string(REGEX MATCH ", ([^,]*), ([^,]*)," line "${line}")
	set(isa ${CMAKE_MATCH_1})
	separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_2}")
	list(APPEND NORMA_SETS ${isa})
	norma_objects(norma_${isa} ${fast_sources})
	target_link_libraries(norma_${isa} PRIVATE OpenMP::OpenMP_C)
	target_compile_definitions(norma_${isa} PRIVATE NR_ISA=${isa})
	# Emulated: 64-byte vectors are passed inside one file only, so their convention does not matter; with more than -O1
	# the unrolled products take the compiler many minutes.
	if(NORMA_EMULATE)
		target_compile_definitions(norma_${isa} PRIVATE NR_EMULATED)
		target_compile_options(norma_${isa} PRIVATE -Wno-psabi -O1)
	else()
		target_compile_options(norma_${isa} PRIVATE ${flags})
		if(NORMA_SANITIZE MATCHES "address") # with more, the checks of the unrolled kernels take clang many minutes a file
			target_compile_options(norma_${isa} PRIVATE -O0)
			# at -O0 clang fuses products and sums only with `on`; of a source, since a target's own flags come too early
			set_source_files_properties(${fast_sources} PROPERTIES COMPILE_OPTIONS -ffp-contract=on)
		endif()
	endif()
	list(APPEND objects $<TARGET_OBJECTS:norma_${isa}>)
endforeach()
if(NOT sets)
	target_compile_definitions(norma_flags INTERFACE NR_NO_FAST)
endif()

# Installed users of the static library link our dependencies by name.
set(NORMA_STATIC_LIBS yaml jansson turbojpeg png archive curl crypto sqlite3 z utf8proc microhttpd m)

add_library(norma_shared SHARED ${objects})
add_library(norma_static STATIC ${objects})
set_target_properties(norma_shared PROPERTIES OUTPUT_NAME norma EXPORT_NAME norma
	VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(norma_static PROPERTIES OUTPUT_NAME norma EXPORT_NAME norma_static)
foreach(lib norma_shared norma_static)
	set_target_properties(${lib} PROPERTIES LINKER_LANGUAGE C)
	target_include_directories(${lib} INTERFACE
		$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
		$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(norma_shared PRIVATE $<BUILD_INTERFACE:norma_deps> $<BUILD_INTERFACE:norma_flags>)
# Every exported name carries the minor version, which may change the interface before 1.0.
configure_file(cmake/libnorma.map.in libnorma.map @ONLY)
target_link_options(norma_shared PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/libnorma.map)
set_target_properties(norma_shared PROPERTIES LINK_DEPENDS ${PROJECT_BINARY_DIR}/libnorma.map)
if(NOT NORMA_SANITIZE)
	target_link_options(norma_shared PRIVATE -Wl,--no-undefined)
endif()
target_link_libraries(norma_static INTERFACE $<BUILD_INTERFACE:norma_deps>
	"$<INSTALL_INTERFACE:${NORMA_STATIC_LIBS}>")
target_link_options(norma_static INTERFACE $<INSTALL_INTERFACE:-fopenmp>)
add_library(norma::norma ALIAS norma_shared)
add_library(norma::norma_static ALIAS norma_static)

# The reference kernels in double: no instruction-set files. Tests take the static one, which shows them what is internal.
norma_objects(norma64_objects ${sources})
target_link_libraries(norma64_objects PRIVATE norma_deps)
target_compile_definitions(norma64_objects PRIVATE NR_DOUBLE NR_NO_FAST)
add_library(norma64 STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:norma64_objects>)
add_library(norma64_shared SHARED $<TARGET_OBJECTS:norma64_objects>)
target_compile_definitions(norma64 INTERFACE NR_DOUBLE NR_NO_FAST)
target_compile_definitions(norma64_shared INTERFACE NR_DOUBLE)
target_link_libraries(norma64 PUBLIC norma_deps)
target_link_libraries(norma64_shared PRIVATE norma_deps norma_flags)
set_target_properties(norma64 PROPERTIES LINKER_LANGUAGE C)
set_target_properties(norma64_shared PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME norma64
	VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

# The program in double that `norma check` starts.
add_executable(norma-check64 ${PROJECT_SOURCE_DIR}/src/check64/norma-check64.c)
target_link_libraries(norma-check64 PRIVATE norma64_shared norma_internal)
file(RELATIVE_PATH to_lib ${CMAKE_INSTALL_FULL_LIBEXECDIR}/norma ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(norma-check64 PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}"
	RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBEXECDIR}/norma)
