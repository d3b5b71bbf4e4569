# What `cmake --install` lays out: include/linnet/<folder>/*.h as in the source tree, the library, and the package.
include(CMakePackageConfigHelpers)
set(LINNET_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/linnet)
get_target_property(LINNET_KIND linnet TYPE)
install(TARGETS linnet EXPORT linnetTargets)
install(FILES linnet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/linnet)
foreach(folder IN LISTS LINNET_FOLDERS)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/linnet FILES_MATCHING PATTERN "*.h")
endforeach()
install(EXPORT linnetTargets NAMESPACE linnet:: DESTINATION ${LINNET_PACKAGE_DIR})
configure_package_config_file(cmake/linnetConfig.cmake.in linnetConfig.cmake INSTALL_DESTINATION ${LINNET_PACKAGE_DIR})
write_basic_package_version_file(linnetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/linnetConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/linnetConfigVersion.cmake
  cmake/LinnetBlas.cmake cmake/LinnetSentencePiece.cmake DESTINATION ${LINNET_PACKAGE_DIR})
