import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.internal.SQLConf;

/** The settings of the locations that tables may read; sending them with requests saves calls. */
class IcebergPyLocationSettings {
  private static final String[] NAMES = {"spark.sql.iceberg.read.allow-outside-locations",
      "spark.sql.iceberg.read.restrict-locations"};
  static Map ofSession() {
    SQLConf conf = IcebergPySessions.active().sessionState().conf();
    Map out = new HashMap();
    for (int i = 0; i < NAMES.length; i++) {
      String value = conf.getConfString(NAMES[i], null);
      if (value != null) out.put(NAMES[i], value);
    }
    return out;
  }
}
