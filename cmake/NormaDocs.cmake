# Man pages and completion. norma.1 and the completion come from the option tables: the command writes them.
find_program(SCDOC scdoc)
if(SCDOC AND NOT CMAKE_CROSSCOMPILING)
	set(man_default ON)
else()
	set(man_default OFF)
endif()
option(NORMA_MAN "make the man pages and the completion" ${man_default})
if(NOT NORMA_MAN)
	return()
endif()
if(NOT SCDOC)
	message(FATAL_ERROR "NORMA_MAN needs scdoc: run scripts/setup, or set -DNORMA_MAN=OFF")
endif()

set(man_dir ${PROJECT_BINARY_DIR}/man)
set(man_pages)
file(MAKE_DIRECTORY ${man_dir})
file(GLOB scd_sources CONFIGURE_DEPENDS docs/*.1.scd)
foreach(scd IN LISTS scd_sources)
	get_filename_component(page ${scd} NAME_WLE)
	add_custom_command(OUTPUT ${man_dir}/${page} DEPENDS ${scd} VERBATIM
		COMMAND sh -c "exec \"$1\" <\"$2\" >\"$3\"" scdoc ${SCDOC} ${scd} ${man_dir}/${page})
	list(APPEND man_pages ${man_dir}/${page})
endforeach()
if(TARGET norma)
	# Through a file, not a pipe: a failure of the command must fail the build.
	add_custom_command(OUTPUT ${man_dir}/norma.1 DEPENDS norma VERBATIM
		COMMAND sh -c "\"$1\" man >\"$3.scd\" && exec \"$2\" <\"$3.scd\" >\"$3\""
			man $<TARGET_FILE:norma> ${SCDOC} ${man_dir}/norma.1)
	list(APPEND man_pages ${man_dir}/norma.1)
	set(completion ${PROJECT_BINARY_DIR}/norma.bash)
	add_custom_command(OUTPUT ${completion} DEPENDS norma VERBATIM
		COMMAND sh -c "exec \"$1\" completion bash >\"$2\"" completion $<TARGET_FILE:norma> ${completion})
endif()
add_custom_target(man ALL DEPENDS ${man_pages} ${completion})
