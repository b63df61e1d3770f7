# cmake -D OUT=FILE.c -D "FILES=A;B" -D "HEADER=draw/web.h" -D PREFIX=nr_web_ -P embed.cmake: each file as a string that ends with a
# zero, named after it.
set(text "#include \"${HEADER}\"\n")
foreach(file IN LISTS FILES)
	get_filename_component(name ${file} NAME)
	string(MAKE_C_IDENTIFIER ${name} name)
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
	string(APPEND text "const char ${PREFIX}${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
