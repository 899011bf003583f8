// Written from bridge/protocol by `make generate`.
import java.util.List;
import java.util.Map;

/** The parts of a scan, each (plan, condition that keeps live rows, anti-joins). */
class IcebergPyPlannedScan {
  private final Map fields;
  IcebergPyPlannedScan(Map fields) { this.fields = fields; }
  List parts() { return (List) fields.get("parts"); }
  List provenConditions() { return (List) fields.get("proven_conditions"); }
}
