package android.content;

public class Context {
    public String getPackageName() {
        return "com.shop";
    }
}
