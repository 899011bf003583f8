/** What a state of generated code begins with where nothing is to be done for it. */
class IcebergPyNoCode extends scala.runtime.AbstractFunction1 {
  public Object apply(Object state) { return ""; }
}
