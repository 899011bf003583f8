// Written from bridge/protocol by `make protocol`.
import java.util.List;
import java.util.Map;

/** The parts of a scan, each (plan, condition that keeps live rows, anti-joins). */
class IcebergPyPlannedScan {
  private final Map said;
  IcebergPyPlannedScan(Map said) { this.said = said; }
  List parts() { return (List) said.get("parts"); }
  List proven() { return (List) said.get("proven"); }
}
