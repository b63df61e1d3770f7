# Man pages and completion. norma.1, norma-train.1, ... and the completions come from the option tables: the command writes them.
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
	# Through files, not a pipe: a failure of the command must fail the build. Which commands there are, only it knows.
	add_custom_command(OUTPUT ${man_dir}/norma.1 DEPENDS norma VERBATIM
		COMMAND $<TARGET_FILE:norma> man --out ${man_dir}/source
		COMMAND sh -ec "for page in \"$2\"/source/*.scd; do \"$1\" <\"$page\" >\"$2/$(basename \"$page\" .scd)\"; done"
			man ${SCDOC} ${man_dir})
	list(APPEND man_pages ${man_dir}/norma.1)
	set(completion)
	foreach(shell bash zsh fish)
		set(script ${PROJECT_BINARY_DIR}/norma.${shell})
		add_custom_command(OUTPUT ${script} DEPENDS norma VERBATIM
			COMMAND sh -c "exec \"$1\" completion \"$2\" >\"$3\"" completion $<TARGET_FILE:norma> ${shell} ${script})
		list(APPEND completion ${script})
	endforeach()
endif()
add_custom_target(man ALL DEPENDS ${man_pages} ${completion})
