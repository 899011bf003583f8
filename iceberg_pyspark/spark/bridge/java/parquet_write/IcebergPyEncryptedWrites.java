/** Writes of encrypted files. */
public class IcebergPyEncryptedWrites {
  /**
   * Return the commit protocol of a job whose files in a folder get keys of `keyLength` bytes, made
   * of a secret.
   */
  public Object commit(Object session, String job, String folder, byte[] secret, int keyLength) {
    IcebergPyExecutorJars.send(
        (org.apache.spark.sql.classic.SparkSession) session, IcebergPyFileKeys.class);
    return new IcebergPyEncryptingCommit(job, folder, new byte[][] {secret, new byte[keyLength]});
  }
}
