"""Encrypted tables: Java's catalog for them, keys for both, and a search for plaintext in files.

Java's Hive catalog alone encrypts. Its `StandardEncryptionManager` is joined here to the folders of
a `HadoopCatalog`, which our catalogs of type `hadoop` open too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow.parquet.encryption as parquet_encryption
import pytest
from pyspark.sql import SparkSession

KEYS = {"keyA": b"0123456789012345", "keyB": b"11234567890123456789012345678901"}


def key_file(folder: Path) -> Path:
    """Write the keys of `KEYS`, which Java's catalog has too, to a file."""
    path = folder / "keys.json"
    path.write_text(json.dumps({k: base64.b64encode(v).decode() for k, v in KEYS.items()}))
    return path


def key_properties(folder: Path) -> dict[str, str]:
    """Return the properties of a catalog with these keys; skip the test on a pyarrow without."""
    if not hasattr(parquet_encryption, "create_encryption_properties"):
        pytest.skip("this pyarrow encrypts no Parquet file by its own key")
    return {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(folder))}


def files_with(folder: Path, texts: Iterable[str]) -> list[str]:
    """Return the files below a folder, except metadata files, that contain one of the texts."""
    secrets = [text.encode() for text in texts]
    files = [f for f in folder.rglob("*") if f.is_file() and not f.name.endswith(".json")]
    assert files, f"{folder} has no files"
    return [str(f) for f in files if any(s in f.read_bytes() for s in secrets)]


def open_encrypted_catalog(spark: SparkSession, name: str, warehouse: Path, scratch: Path) -> None:
    """Add Java's catalog of encrypted tables to a session that has Iceberg's Java runtime."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(_SOURCE)
    jar = scratch / "encrypted-catalog.jar"
    codes = compiler.getBytecodes()
    with ZipFile(jar, "w") as file:
        for class_name in codes:
            file.writestr(class_name.replace(".", "/") + ".class", bytes(codes[class_name]))
    loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    prefix = f"spark.sql.catalog.{name}"
    spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{prefix}.catalog-impl", "EncryptedCatalog")
    spark.conf.set(f"{prefix}.cache-enabled", "false")
    spark.conf.set(f"{prefix}.warehouse", str(warehouse))


_SOURCE = """
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.LocationProviders;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.*;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.util.ByteBuffers;

public class EncryptedCatalog extends org.apache.iceberg.hadoop.HadoopCatalog {

  protected TableOperations newTableOps(TableIdentifier id) {
    String location = defaultWarehouseLocation(id);
    new java.io.File(location + "/metadata").mkdirs();
    return new Operations(location);
  }

  public static class Keys implements KeyManagementClient {
    private byte[] key(String id) {
      if (id.equals("keyA")) return "0123456789012345".getBytes();
      if (id.equals("keyB")) return "11234567890123456789012345678901".getBytes();
      throw new IllegalArgumentException("no key " + id);
    }

    public ByteBuffer wrapKey(ByteBuffer key, String id) {
      Ciphers.AesGcmEncryptor cipher = new Ciphers.AesGcmEncryptor(key(id));
      return ByteBuffer.wrap(cipher.encrypt(ByteBuffers.toByteArray(key), null));
    }

    public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
      Ciphers.AesGcmDecryptor cipher = new Ciphers.AesGcmDecryptor(key(id));
      return ByteBuffer.wrap(cipher.decrypt(ByteBuffers.toByteArray(wrapped), null));
    }

    public void initialize(Map properties) {}

    public void close() {}
  }

  public static class Operations implements TableOperations {
    private final String location;
    private final FileIO raw = new HadoopFileIO(new Configuration());
    private TableMetadata current;
    private EncryptionManager manager;
    private FileIO encrypting;
    private int version = 0;

    public Operations(String location) {
      this.location = location;
    }

    public TableMetadata current() {
      return current == null ? refresh() : current;
    }

    public TableMetadata refresh() {
      String[] names = new java.io.File(location + "/metadata").list();
      version = 0;
      for (int i = 0; names != null && i < names.length; i++) {
        if (names[i].matches("v\\\\d+\\\\.metadata\\\\.json")) {
          version = Math.max(version, Integer.parseInt(names[i].replaceAll("\\\\D", "")));
        }
      }
      current = version == 0 ? null : TableMetadataParser.read(raw, file(version));
      return current;
    }

    private String file(int number) {
      return location + "/metadata/v" + number + ".metadata.json";
    }

    public EncryptionManager encryption() {
      if (manager == null) {
        TableMetadata m = current();
        if (m == null || m.properties().get("encryption.key-id") == null) {
          return PlaintextEncryptionManager.instance();
        }
        manager =
            EncryptionUtil.createEncryptionManager(m.encryptionKeys(), m.properties(), new Keys());
      }
      return manager;
    }

    public void commit(TableMetadata base, TableMetadata metadata) {
      if (base == metadata) return;
      TableMetadata written = metadata;
      if (encryption() instanceof StandardEncryptionManager) {
        TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
        Iterator keys = EncryptionUtil.encryptionKeys(encryption()).values().iterator();
        while (keys.hasNext()) builder.addEncryptionKey((EncryptedKey) keys.next());
        written = builder.build();
      }
      version++;
      TableMetadataParser.write(written, raw.newOutputFile(file(version)));
      try {
        java.nio.file.Files.write(
            java.nio.file.Paths.get(location + "/metadata/version-hint.text", new String[0]),
            String.valueOf(version).getBytes(), new java.nio.file.OpenOption[0]);
      } catch (java.io.IOException e) {
        throw new RuntimeException(e);
      }
      current = TableMetadataParser.read(raw, file(version));
    }

    public FileIO io() {
      EncryptionManager e = encryption();
      if (!(e instanceof StandardEncryptionManager)) return raw;
      if (encrypting == null) encrypting = EncryptingFileIO.combine(raw, e);
      return encrypting;
    }

    public String metadataFileLocation(String name) {
      return location + "/metadata/" + name;
    }

    public LocationProvider locationProvider() {
      return LocationProviders.locationsFor(location, current().properties());
    }
  }
}
"""
