# norma_deps: what libnorma links.
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
# pictures, archives, downloads, checksums, the run database, Unicode, the dashboard
set(data_modules libturbojpeg libpng libwebp libtiff-4 matio libarchive libcurl libcrypto sqlite3 zlib libutf8proc libmicrohttpd)
foreach(module IN LISTS data_modules)
	pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
endforeach()
find_package(Threads REQUIRED)

add_library(norma_deps INTERFACE)
target_link_libraries(norma_deps INTERFACE OpenMP::OpenMP_C PkgConfig::yaml PkgConfig::jansson Threads::Threads m)
foreach(module IN LISTS data_modules)
	target_link_libraries(norma_deps INTERFACE PkgConfig::${module})
endforeach()
