package io.github.flaked.spring;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** A property flaked.* has a value that the client does not accept. */
final class InvalidPropertyException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String property;

    InvalidPropertyException(String property, RuntimeException cause) {
        super(property + ": " + cause.getMessage(), cause);
        this.property = property;
    }

    /** Prints the property and what is wrong with it in place of a stack trace. */
    static final class Analyzer extends AbstractFailureAnalyzer<InvalidPropertyException> {
        @Override
        protected FailureAnalysis analyze(Throwable root, InvalidPropertyException e) {
            String action = "Correct " + e.property + " in the application's configuration."
                    + (e.property.equals("flaked.addresses")
                            ? " An address is host:port, host, [::1]:port or unix:/path."
                            : "");
            return new FailureAnalysis(e.getMessage(), action, e);
        }
    }
}
