/** The same by the name that Iceberg's own connector has, where that is not there. */
public class IcebergPyIcebergFormat extends IcebergPyFormat {
  public String shortName() { return "iceberg"; }
}
