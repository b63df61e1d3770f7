# norma_deps: what libnorma links. norma_deps64: the same without oneDNN (it has no double GEMM).
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
# pictures, archives, downloads, checksums, the run store, Unicode, the dashboard
set(data_modules libturbojpeg libpng matio libarchive libcurl libcrypto sqlite3 zlib libutf8proc libmicrohttpd)
foreach(module IN LISTS data_modules)
	pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
endforeach()
find_package(Threads REQUIRED)

# Not find_package(dnnl): a build with OpenCL then wants OpenCL's headers, which the C API does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(DNNL_LIBRARY dnnl)
if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
	message(FATAL_ERROR "oneDNN is missing: run scripts/setup, or set DNNL_INCLUDE_DIR and DNNL_LIBRARY")
endif()

add_library(norma_deps64 INTERFACE)
target_link_libraries(norma_deps64 INTERFACE OpenMP::OpenMP_C PkgConfig::yaml PkgConfig::jansson Threads::Threads m)
foreach(module IN LISTS data_modules)
	target_link_libraries(norma_deps64 INTERFACE PkgConfig::${module})
endforeach()
add_library(norma_deps INTERFACE)
target_include_directories(norma_deps SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(norma_deps INTERFACE norma_deps64 ${DNNL_LIBRARY})
