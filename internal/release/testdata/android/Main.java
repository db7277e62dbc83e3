import com.shop.LeakMarks;

/** A test with two loops. */
public class Main {
    public static void main(String[] args) {
        LeakMarks marks = new LeakMarks("/data/local/tmp/leak-marks");
        marks.begin();
        marks.mark();
        marks.mark();
    }
}
