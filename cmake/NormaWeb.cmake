# web/*.{css,js} (and those of its folders) as arrays in one C file, so that pages need no installed files. Likewise the sources that
# `norma new` writes.
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*.css ${PROJECT_SOURCE_DIR}/web/*.js)
set(norma_web ${PROJECT_BINARY_DIR}/generated/norma_web.c)
add_custom_command(OUTPUT ${norma_web}
	COMMAND ${CMAKE_COMMAND} -D "OUT=${norma_web}" -D "FILES=${web_files}" -D HEADER=draw/web.h -D PREFIX=nr_web_
		-P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
	DEPENDS ${web_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)

file(GLOB new_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/new/*.c.in)
set(norma_new ${PROJECT_BINARY_DIR}/generated/norma_new.c)
add_custom_command(OUTPUT ${norma_new}
	COMMAND ${CMAKE_COMMAND} -D "OUT=${norma_new}" -D "FILES=${new_files}" -D HEADER=cli/new/templates.h -D PREFIX=cli_new_
		-P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
	DEPENDS ${new_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
