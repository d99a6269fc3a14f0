"""Which modules go to workers."""

import importlib
import sys
import zipfile

from wallaroo_spark.jvm.shipping import shipment_of_this_process


def test_modules_in_zips_are_sent_by_spark_and_those_in_files_by_us(tmp_path, monkeypatch):
    (tmp_path / "of_a_file.py").write_text("")
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as sent:
        sent.writestr("of_a_zip.py", "")
    for path in (tmp_path, tmp_path / "sent.zip"):
        monkeypatch.syspath_prepend(str(path))
    for name in ("of_a_file", "of_a_zip"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
    shipped = shipment_of_this_process().files
    assert "of_a_file" in shipped
    assert "of_a_zip" not in shipped
