import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A procedure with arguments; Python describes its parameters and result, and runs it. */
class IcebergPyBoundProcedure implements BoundProcedure {
  private final String catalog;
  private final String handle;
  private final String[] defaultNamespace;
  private final IcebergPyProcedureDefinition definition;
  private final DataType[] types;

  IcebergPyBoundProcedure(String catalog, String handle, String[] defaultNamespace,
      IcebergPyProcedureDefinition definition) {
    this.catalog = catalog;
    this.handle = handle;
    this.defaultNamespace = defaultNamespace;
    this.definition = definition;
    this.types = new DataType[definition.parameters().size()];
    for (int i = 0; i < types.length; i++) types[i] = DataType.fromDDL(parameter(i).type());
  }
  private IcebergPyProcedureArgument parameter(int i) {
    return (IcebergPyProcedureArgument) definition.parameters().get(i);
  }

  public String name() { return definition.name(); }
  public String description() { return definition.description(); }
  public boolean isDeterministic() { return false; }
  public ProcedureParameter[] parameters() {
    ProcedureParameter[] out = new ProcedureParameter[types.length];
    for (int i = 0; i < out.length; i++) {
      ProcedureParameter.Builder builder = ProcedureParameter.in(parameter(i).name(), types[i]);
      if (!parameter(i).isRequired()) builder = builder.defaultValue("NULL");
      out[i] = builder.build();
    }
    return out;
  }

  public Iterator call(InternalRow input) {
    Map arguments = new HashMap();
    for (int i = 0; i < types.length; i++)
      arguments.put(parameter(i).name(), input.isNullAt(i) ? null : plain(input, i));
    List rows =
        IcebergPyRequests
            .procedureCall(handle, IcebergPyBridge.session(), name(), arguments, currentNamespace())
            .rows();
    StructType schema = (StructType) DataType.fromJson(definition.schema());
    return Collections.singletonList(new IcebergPyProcedureResult(schema, rows)).iterator();
  }
  /** The namespace of an unqualified table: the current one, if this is the current catalog. */
  private List currentNamespace() {
    CatalogManager manager = IcebergPySessions.active().sessionState().catalogManager();
    String[] namespace = manager.currentCatalog().name().equals(catalog)
        ? manager.currentNamespace()
        : defaultNamespace;
    return IcebergPyBridge.list(namespace);
  }
  private Object plain(InternalRow input, int i) {
    Object value = input.get(i, types[i]);
    if (types[i] instanceof ArrayType)
      return items((ArrayData) value, ((ArrayType) types[i]).elementType());
    if (types[i] instanceof MapType) {
      List keys = items(((MapData) value).keyArray(), ((MapType) types[i]).keyType());
      List values = items(((MapData) value).valueArray(), ((MapType) types[i]).valueType());
      Map out = new HashMap();
      for (int k = 0; k < keys.size(); k++) out.put(keys.get(k), values.get(k));
      return out;
    }
    return value instanceof UTF8String ? value.toString() : value;
  }
  private static List items(ArrayData data, DataType type) {
    List out = new ArrayList(Arrays.asList((Object[]) data.toObjectArray(type)));
    for (int i = 0; i < out.size(); i++)
      if (out.get(i) instanceof UTF8String) out.set(i, out.get(i).toString());
    return out;
  }
}
