package org.junit.runner;

public class Description {
    public Class<?> getTestClass() {
        return CheckoutTest.class;
    }

    public String getMethodName() {
        return "opens checkout[1]";
    }

    static class CheckoutTest {}
}
