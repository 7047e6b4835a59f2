"""Tests of check_layers.py, on small trees written for each."""

import pathlib
import tempfile
import unittest

import check_layers


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/base/CMakeLists.txt", "bascule_layer(base LIBRARIES Threads::Threads)")
        self.write("src/base/status.h", "#include <string>\n")
        self.write("src/tensor/CMakeLists.txt", "bascule_layer(tensor DEPENDS base)")
        self.write("src/tensor/view.h", '#include "base/status.h"\n')

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def assert_one_violation(self, *parts):
        violations = check_layers.check(self.root)
        self.assertEqual(len(violations), 1, violations)
        for part in parts:
            self.assertIn(part, violations[0])

    def test_accepts_includes_of_lower_layers_and_vendors(self):
        self.write("src/tensor/view.cc", '#include "tensor/view.h"\n#include <fmt/format.h>\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_refuses_an_include_upwards_with_file_and_line(self):
        self.write("src/base/log.cc", '#include "base/status.h"\n\n#include "tensor/view.h"\n')
        self.assert_one_violation("src/base/log.cc:3:", "base may not include tensor")

    def test_refuses_an_allowed_layer_that_cmake_does_not_name(self):
        self.write("src/format/CMakeLists.txt", "bascule_layer(format DEPENDS tensor)")
        self.write("src/format/checkpoint.cc", '#include "base/status.h"\n')
        self.assert_one_violation("checkpoint.cc:1:", "DEPENDS")

    def test_refuses_a_cmake_dependency_upwards(self):
        self.write("src/tensor/CMakeLists.txt", "bascule_layer(tensor\n  DEPENDS base kernels)")
        self.assert_one_violation("src/tensor/CMakeLists.txt", "may not depend on kernels")

    def test_does_not_take_a_library_for_a_dependency(self):
        text = "bascule_layer(tensor DEPENDS base LIBRARIES hwy)  # not kernels\n"
        self.assertEqual(check_layers.parse_cmake(text), ("tensor", {"base"}))

    def test_refuses_climbing_paths(self):
        self.write("src/tensor/view.cc", '#include "../base/status.h"\n')
        self.assert_one_violation("view.cc:1:", "../")

    def test_refuses_paths_that_are_not_named_from_src(self):
        self.write("src/tensor/view.cc", '#  include "view.h"\n')
        self.assert_one_violation("view.cc:1:", "named from there")

    def test_refuses_ours_in_angle_brackets(self):
        self.write("src/base/log.cc", "#include <tensor/view.h>\n")
        self.assert_one_violation("log.cc:1:", "<>")

    def test_refuses_a_folder_that_is_no_layer(self):
        self.write("src/util/misc.h", "")
        self.assert_one_violation("src/util", "no layer of that name")

    def test_refuses_a_layer_without_a_library(self):
        self.write("src/device/stream.h", "")
        self.assert_one_violation("src/device/CMakeLists.txt", "missing")

    def test_lets_tests_alone_include_what_stands_under_tests(self):
        self.write("tests/support/temp_folder.h", "")
        self.write("src/base/status_test.cc", '#include "support/temp_folder.h"\n')
        self.assertEqual(check_layers.check(self.root), [])
        self.write("src/base/status.cc", '#include "support/temp_folder.h"\n')
        self.assert_one_violation("status.cc:1:", "no such file")

    def test_lets_tests_alone_include_a_layer_further_below(self):
        self.write("src/engine/CMakeLists.txt", "bascule_layer(engine DEPENDS model)")
        self.write("src/format/safetensors.h", "")
        self.write("src/format/CMakeLists.txt", "bascule_layer(format DEPENDS base)")
        self.write("src/engine/setup_test.cc", '#include "format/safetensors.h"\n')
        self.assertEqual(check_layers.check(self.root), [])
        self.write("src/engine/setup.cc", '#include "format/safetensors.h"\n')
        self.assert_one_violation("setup.cc:1:", "engine may not include format")
        self.write("src/engine/setup.cc", "")
        self.write("src/base/status_test.cc", '#include "format/safetensors.h"\n')
        self.assert_one_violation("status_test.cc:1:", "base may not include format")

    def test_opens_only_the_door_of_the_engine_to_the_server(self):
        self.write("src/engine/CMakeLists.txt", "bascule_layer(engine DEPENDS base)")
        self.write("src/engine/engine.h", "")
        self.write("src/engine/scheduler.h", "")
        self.write("src/serve/CMakeLists.txt", "bascule_layer(serve DEPENDS base engine)")
        self.write("src/serve/chat.cc", '#include "engine/engine.h"\n#include "engine/scheduler.h"\n')
        self.assert_one_violation("chat.cc:2:", "only engine/engine.h, engine/request.h")


if __name__ == "__main__":
    unittest.main()
