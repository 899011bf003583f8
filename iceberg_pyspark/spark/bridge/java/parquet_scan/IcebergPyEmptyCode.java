/** Returns empty initialization code for a variable of generated code. */
class IcebergPyEmptyCode extends scala.runtime.AbstractFunction1 {
  public Object apply(Object state) { return ""; }
}
