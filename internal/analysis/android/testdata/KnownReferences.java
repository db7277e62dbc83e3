import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.EnumSet;
import java.util.List;
import shark.AndroidBuildMirror;
import shark.AndroidReferenceMatchers;
import shark.GraphContext;
import shark.HeapGraph;
import shark.LibraryLeakReferenceMatcher;
import shark.ReferenceMatcher;

/**
 * Prints Shark's known references, an empty line, those that a JVM has too, an empty line,
 * and for each build of a file which of the first apply to it, as a row of 0 and 1. A line
 * of the file is the API level, the manufacturer and the ID, with tabs between them.
 */
public final class KnownReferences {
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    List<ReferenceMatcher> all = AndroidReferenceMatchers.getAppDefaults();
    print(out, all);
    print(out, AndroidReferenceMatchers.buildKnownReferences(EnumSet.of(
        AndroidReferenceMatchers.REFERENCES,
        AndroidReferenceMatchers.FINALIZER_WATCHDOG_DAEMON,
        AndroidReferenceMatchers.MAIN)));
    for (String line : Files.readAllLines(Paths.get(args[0]), StandardCharsets.UTF_8)) {
      String[] build = line.split("\t", -1);
      out.println(row(all, graph(Integer.parseInt(build[0]), build[1], build[2])));
    }
    out.flush();
  }

  private static void print(PrintStream out, List<ReferenceMatcher> matchers) {
    for (ReferenceMatcher m : matchers) {
      out.println((m instanceof LibraryLeakReferenceMatcher ? "leak " : "ignored ") + m.getPattern());
    }
    out.println();
  }

  private static String row(List<ReferenceMatcher> matchers, HeapGraph graph) {
    StringBuilder row = new StringBuilder();
    for (ReferenceMatcher m : matchers) {
      boolean applies = !(m instanceof LibraryLeakReferenceMatcher)
          || ((LibraryLeakReferenceMatcher) m).getPatternApplies().invoke(graph);
      row.append(applies ? '1' : '0');
    }
    return row.toString();
  }

  /** A heap of which only the build is known, from where AndroidBuildMirror keeps it. */
  private static HeapGraph graph(int sdk, String manufacturer, String id) {
    GraphContext context = new GraphContext();
    context.set(AndroidBuildMirror.class.getName(), new AndroidBuildMirror(manufacturer, sdk, id));
    return (HeapGraph) Proxy.newProxyInstance(
        KnownReferences.class.getClassLoader(),
        new Class<?>[] {HeapGraph.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("getContext")) {
            return context;
          }
          throw new UnsupportedOperationException(method.toString());
        });
  }
}
