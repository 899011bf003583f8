/** The same format by the name of Iceberg's own connector, if the connector is missing. */
public class IcebergPyIcebergFormat extends IcebergPyFormat {
  public String shortName() { return "iceberg"; }
}
