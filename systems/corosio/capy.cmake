# For Corosio's own CMake (NOTES.md): it expects a target boost_capy, and an installed Capy has Boost::capy.
find_package(boost_capy CONFIG REQUIRED)
if(NOT TARGET boost_capy)
    add_library(boost_capy ALIAS Boost::capy)
endif()
