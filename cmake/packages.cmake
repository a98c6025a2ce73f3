# `make packages` makes three Debian packages. The package warploom contains the client, the C library and the folder deploy/; the packages
# warploom-coordinator and warploom-worker contain a systemd service each. Installing a package neither enables nor starts its service.
# `make install` does not install the systemd files below, since the units name programs in /usr/bin.
set(coordinator_unit warploomd)
set(coordinator_settings warploomd.toml callers.txt)
set(worker_unit warploom-worker)
set(worker_settings worker.env)
foreach(component coordinator worker)
  install(FILES deploy/systemd/${${component}_unit}.service DESTINATION /lib/systemd/system COMPONENT ${component} EXCLUDE_FROM_ALL)
  foreach(file ${${component}_settings})
    install(FILES deploy/systemd/${file} DESTINATION /etc/warploom COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
  foreach(kind sysusers tmpfiles)
    install(FILES deploy/systemd/warploom.${kind} DESTINATION /usr/lib/${kind}.d RENAME warploom-${component}.conf
      COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL client coordinator worker)
set(CPACK_COMPONENTS_GROUPING IGNORE)  # every component becomes a package of its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "The Warploom developers <warploom@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "search-based autotuner of fused kernels for tensor programs")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME warploom)
set(CPACK_DEBIAN_CLIENT_PACKAGE_RECOMMENDS "g++, bubblewrap, openssl")
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_NAME warploom-coordinator)
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_DEPENDS "warploom (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_RECOMMENDS systemd)
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME warploom-worker)
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "warploom (= ${PROJECT_VERSION}), g++ | clang, binutils, lld, bubblewrap")
set(CPACK_DEBIAN_WORKER_PACKAGE_RECOMMENDS systemd)
# postinst (run when a package is installed) creates the users and folders of a service at once. Otherwise systemd would create them only
# when the machine next starts; this remains so for the folders in a chroot without /proc, where postinst cannot create them.
foreach(component coordinator worker)
  string(TOUPPER ${component} upper)
  set(folder ${PROJECT_BINARY_DIR}/generated/deb-${component})
  file(WRITE ${folder}/postinst "#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers warploom-${component}.conf; fi
if command -v systemd-tmpfiles >/dev/null; then systemd-tmpfiles --create warploom-${component}.conf || true; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
")
  file(WRITE ${folder}/prerm "#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now ${${component}_unit}; fi
")
  list(TRANSFORM ${component}_settings REPLACE "(.+)" "/etc/warploom/\\1\n" OUTPUT_VARIABLE settings)
  list(JOIN settings "" settings)
  file(WRITE ${folder}/conffiles "${settings}")
  file(CHMOD ${folder}/postinst ${folder}/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${folder}/postinst ${folder}/prerm ${folder}/conffiles)
endforeach()
include(CPack)
