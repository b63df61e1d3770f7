# norma_flags: how every file of ours is compiled. Never -march=native, never -ffast-math.
add_library(norma_flags INTERFACE)
target_compile_definitions(norma_flags INTERFACE _GNU_SOURCE)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
if(NORMA_SANITIZE MATCHES "address") # builds in half the time
	set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g")
else()
	set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
endif()
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")

# Products and sums may fuse, errno and traps are not looked at; order and NaN keep their meaning.
target_compile_options(norma_flags INTERFACE -ffp-contract=fast -fno-math-errno -fno-trapping-math)

# Callbacks leave parameters unused and tables rely on zero fill; both are C as intended.
target_compile_options(norma_flags INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith
	-Wcast-qual -Wvla -Wformat=2 -Wundef -Wwrite-strings
	-Wno-unused-parameter -Wno-missing-field-initializers
	$<$<C_COMPILER_ID:GNU>:-Wduplicated-cond> $<$<C_COMPILER_ID:GNU>:-Wlogical-op>
	$<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
if(NORMA_WERROR)
	target_compile_options(norma_flags INTERFACE -Werror)
endif()

if(NORMA_SANITIZE) # reports need lines alone; all else of -g takes half the time of the unrolled kernels
	target_compile_options(norma_flags INTERFACE
		-fsanitize=${NORMA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
	target_link_options(norma_flags INTERFACE -fsanitize=${NORMA_SANITIZE})
endif()
if(NORMA_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
		message(FATAL_ERROR "NORMA_FUZZ needs clang (libFuzzer); use the preset `fuzz`")
	endif()
	target_compile_options(norma_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
