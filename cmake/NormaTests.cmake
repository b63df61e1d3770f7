# Tests: one program per file; a new file is a new test. Built by the target `tests`, run by ctest.
#   test/unit/NAME.c    unit.NAME      with libnorma (internal symbols visible)
#   test/unit64/NAME.c  unit64.NAME    with libnorma64
#   test/gradcheck.c    gradcheck.SET, gradcheck64
#   test/golden/        golden.SET     every reference file below it
#   test/cli/NAME.sh    cli.NAME       exit 77: skipped; cli.NAME.SET for some
# SET is an instruction set; what the CPU lacks is skipped. The label `sets` marks these tests and the unit tests that try every
# set: the emulated preset builds (target `tests-sets`) and runs them alone.
#   scripts/check-*     lint.*         label `lint`; the sanitizer presets leave them out
#   test/peers/NAME.c   peer-NAME      what the peers' Python scripts ask; run by scripts/test-all
#   test/crash/         crash          the crash laboratory; built by the target `crash`, run by scripts/test-all
#   test/fuzz/NAME.c    fuzz-NAME      only with NORMA_FUZZ; run by scripts/test-all
find_library(CMOCKA_LIBRARY cmocka)
find_path(CMOCKA_INCLUDE_DIR cmocka.h)
add_custom_target(tests)
add_custom_target(tests-sets)

# Threads that wait go to sleep soon (libgomp, libomp): regions of microseconds would take a slice of the scheduler each where another
# process has their CPU.
set(test_env NORMA_SOURCE=${PROJECT_SOURCE_DIR} NORMA_BUILD=${PROJECT_BINARY_DIR} NORMA_SANITIZE=${NORMA_SANITIZE}
	GOMP_SPINCOUNT=1000 KMP_BLOCKTIME=0)
if(TARGET norma)
	add_dependencies(tests norma)
	add_dependencies(tests-sets norma)
	list(APPEND test_env NORMA=$<TARGET_FILE:norma>)
endif()
# libomp lacks the annotations that TSan needs; Archer, its OMPT tool, supplies them.
if(NORMA_SANITIZE MATCHES "thread")
	execute_process(COMMAND ${CMAKE_C_COMPILER} -print-resource-dir
		OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	find_library(ARCHER_LIBRARY archer HINTS ${resources}/../..)
	if(NOT ARCHER_LIBRARY)
		message(FATAL_ERROR "libarcher.so is missing: run scripts/setup --dev, and use clang for TSan")
	endif()
	list(APPEND test_env OMP_TOOL_LIBRARIES=${ARCHER_LIBRARY}
		"TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:suppressions=${PROJECT_SOURCE_DIR}/test/tsan.supp")
elseif(NORMA_SANITIZE)
	list(APPEND test_env ASAN_OPTIONS=handle_segv=2:detect_stack_use_after_return=1
		UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/test/lsan.supp:print_suppressions=0)
endif()

# The limit is for tests that hang: ten times what the slowest takes on a quiet machine, and more.
set(limit 900)
if(NORMA_SANITIZE)
	math(EXPR limit "${limit} * 5")
endif()

function(norma_test name)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
	set_tests_properties(${name} PROPERTIES TIMEOUT ${limit} SKIP_RETURN_CODE 77 ENVIRONMENT "${test_env}")
endfunction()

function(norma_test_sets name)
	foreach(isa IN LISTS NORMA_SETS)
		norma_test(${name}.${isa} bash ${PROJECT_SOURCE_DIR}/test/on-set.sh ${isa} ${ARGN})
		set_tests_properties(${name}.${isa} PROPERTIES LABELS sets)
	endforeach()
endfunction()

function(norma_test_program program source lib)
	add_executable(${program} EXCLUDE_FROM_ALL ${source})
	set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
	target_compile_options(${program} PRIVATE -UNDEBUG)
	target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/test)
	target_include_directories(${program} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
	target_link_libraries(${program} PRIVATE ${lib} norma_internal ${CMOCKA_LIBRARY})
	add_dependencies(tests ${program})
endfunction()

file(GLOB unit_sources CONFIGURE_DEPENDS test/unit/*.c)
foreach(source IN LISTS unit_sources)
	get_filename_component(name ${source} NAME_WE)
	norma_test_program(unit-${name} ${source} norma_static)
	norma_test(unit.${name} unit-${name})
	file(STRINGS ${source} over_sets REGEX "isa_next\\(")
	if(over_sets)
		set_tests_properties(unit.${name} PROPERTIES LABELS sets)
		add_dependencies(tests-sets unit-${name})
	endif()
endforeach()

file(GLOB unit64_sources CONFIGURE_DEPENDS test/unit64/*.c)
foreach(source IN LISTS unit64_sources)
	get_filename_component(name ${source} NAME_WE)
	norma_test_program(unit64-${name} ${source} norma64)
	norma_test(unit64.${name} unit64-${name})
endforeach()

file(GLOB peer_sources CONFIGURE_DEPENDS test/peers/*.c)
foreach(source IN LISTS peer_sources)
	get_filename_component(name ${source} NAME_WE)
	norma_test_program(peer-${name} ${source} norma_static)
endforeach()

file(GLOB gradcheck_source CONFIGURE_DEPENDS test/gradcheck.c)
if(gradcheck_source)
	norma_test_program(gradcheck ${gradcheck_source} norma_static)
	norma_test_sets(gradcheck $<TARGET_FILE:gradcheck>)
	add_dependencies(tests-sets gradcheck gradcheck64)
	norma_test_program(gradcheck64 ${gradcheck_source} norma64)
	norma_test(gradcheck64 gradcheck64)
endif()

if(TARGET norma-golden)
	add_dependencies(tests norma-golden)
	add_dependencies(tests-sets norma-golden)
	norma_test_sets(golden $<TARGET_FILE:norma-golden> ${PROJECT_SOURCE_DIR}/test/golden)
endif()

file(GLOB cli_tests CONFIGURE_DEPENDS test/cli/*.sh)
set(cli_sets equal-bits graph text train) # once for each instruction set
foreach(script IN LISTS cli_tests)
	get_filename_component(name ${script} NAME_WE)
	if(name IN_LIST cli_sets)
		norma_test_sets(cli.${name} bash ${script})
	else()
		norma_test(cli.${name} bash ${script})
	endif()
endforeach()

foreach(check layers bans tags format)
	norma_test(lint.${check} ${PROJECT_SOURCE_DIR}/scripts/check-${check})
	set_tests_properties(lint.${check} PROPERTIES LABELS lint)
endforeach()

# The crash laboratory (test/crash/crash.sh, hosts.sh): a download without a data set, the library that makes calls fail, a bad line.
add_executable(crash-get EXCLUDE_FROM_ALL test/crash/get.c)
target_link_libraries(crash-get PRIVATE norma_static norma_internal)
add_library(fault SHARED EXCLUDE_FROM_ALL test/crash/fault.c)
target_compile_definitions(fault PRIVATE _GNU_SOURCE)
set_target_properties(fault PROPERTIES C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
set_target_properties(crash-get PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
add_executable(crash-link EXCLUDE_FROM_ALL test/crash/link.c) # between the hosts of test/crash/hosts.sh
target_compile_definitions(crash-link PRIVATE _GNU_SOURCE)
set_target_properties(crash-link PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
add_custom_target(crash DEPENDS norma crash-get crash-link fault)
add_dependencies(tests fault) # of cli.no-memory

if(NORMA_FUZZ)
	file(GLOB fuzz_sources CONFIGURE_DEPENDS test/fuzz/*.c)
	add_custom_target(fuzzers)
	foreach(source IN LISTS fuzz_sources)
		get_filename_component(name ${source} NAME_WE)
		add_executable(fuzz-${name} ${source})
		target_link_libraries(fuzz-${name} PRIVATE norma_static norma_internal)
		target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
		add_dependencies(fuzzers fuzz-${name})
	endforeach()
endif()
