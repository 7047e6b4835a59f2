# Golden tensors lie in git as archives (tools/pack_golden.py); here they are unpacked beside them,
# where tests look for them and git ignores them. A file appears whole or not at all, whoever else
# configures at the same time.
file(GLOB archives CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/golden/*/*.tar.xz)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${archives})
foreach(archive IN LISTS archives)
  cmake_path(GET archive PARENT_PATH folder)
  cmake_path(GET archive STEM name)
  set(file ${folder}/${name}.safetensors)
  if(${archive} IS_NEWER_THAN ${file})  # so is one of the same time, and where there is no file
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${PROJECT_BINARY_DIR}/goldens TOUCH)
    file(COPY_FILE ${PROJECT_BINARY_DIR}/goldens/${name}.safetensors ${file}.new)
    file(RENAME ${file}.new ${file})
  endif()
endforeach()
