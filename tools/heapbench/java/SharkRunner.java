import java.io.File;
import java.util.EnumSet;
import java.util.List;
import shark.AndroidMetadataExtractor;
import shark.AndroidObjectInspectors;
import shark.AndroidReferenceMatchers;
import shark.CloseableHeapGraph;
import shark.FilteringLeakingObjectFinder;
import shark.HeapAnalysis;
import shark.HeapAnalysisFailure;
import shark.HeapAnalysisSuccess;
import shark.HeapAnalyzer;
import shark.HprofHeapGraph;
import shark.HprofIndex;
import shark.MetadataExtractor;
import shark.OnAnalysisProgressListener;
import shark.ReferenceMatcher;

/**
 * SharkRunner DUMP analyses a heap dump with Shark 2.14, set up as it is in an app, prints how many
 * leaks it has, and ends with 1 where Shark fails. What needs android.os.Build is skipped for the
 * dump of a runtime without an app, where Shark would end.
 */
public final class SharkRunner {
  public static void main(String[] args) throws Exception {
    File dump = new File(args[0]);
    HeapAnalysis analysis;
    try (CloseableHeapGraph graph =
        HprofHeapGraph.Companion.openHeapGraph(
            dump, null, HprofIndex.Companion.defaultIndexedGcRootTags())) {
      analysis = analyze(dump, graph);
    }
    if (analysis instanceof HeapAnalysisFailure) {
      System.err.println(((HeapAnalysisFailure) analysis).getException().getMessage());
      System.exit(1);
    }
    HeapAnalysisSuccess success = (HeapAnalysisSuccess) analysis;
    System.out.printf(
        "%d application leaks, %d library leaks%n",
        success.getApplicationLeaks().size(), success.getLibraryLeaks().size());
  }

  private static HeapAnalysis analyze(File dump, CloseableHeapGraph graph) {
    boolean app = graph.findClassByName("android.os.Build") != null;
    List<ReferenceMatcher> matchers =
        app
            ? AndroidReferenceMatchers.Companion.getAppDefaults()
            : AndroidReferenceMatchers.Companion.buildKnownReferences(
                EnumSet.of(AndroidReferenceMatchers.REFERENCES));
    MetadataExtractor metadata =
        app ? AndroidMetadataExtractor.INSTANCE : MetadataExtractor.Companion.getNO_OP();
    return new HeapAnalyzer(OnAnalysisProgressListener.Companion.getNO_OP())
        .analyze(
            dump,
            graph,
            new FilteringLeakingObjectFinder(
                AndroidObjectInspectors.Companion.getAppLeakingObjectFilters()),
            matchers,
            true,
            AndroidObjectInspectors.Companion.getAppDefaults(),
            metadata);
  }
}
