package io.github.flaked.client;

import java.util.Set;

/** A node refused the call, and no other node can help: the call or the configuration must be corrected. */
public final class RefusedException extends FlakedException {
    private static final long serialVersionUID = 1;
    private static final Set<String> FINAL =
            Set.of("no-sequence", "frozen", "wrong-mode", "no-right", "exhausted", "too-many");

    private final String address;

    RefusedException(String address, String reply) {
        super(address + " answered -" + reply + advice(reply), reply, null);
        this.address = address;
    }

    private RefusedException(String address, String message, String refusal) {
        super(message, refusal, null);
        this.address = address;
    }

    private static String advice(String reply) {
        boolean token = reply.startsWith("NOAUTH") || reply.startsWith("WRONGPASS");
        return token ? ". Set the token that the node wants: flaked.token, or token of the builder" : "";
    }

    /** Returns the exception for a node of another cluster. */
    static RefusedException wrongNode(String address, String message) {
        return new RefusedException(address, message, "WRONGNODE reason=other-cluster " + message);
    }

    /** Returns the address of the node, as the client was given it. */
    public String address() {
        return address;
    }

    /** Reports whether the node refuses everything until an operator acts. */
    boolean needsOperator() {
        return Set.of("NOAUTH", "WRONGPASS", "WRONGNODE").contains(code())
                || code().equals("EXHAUSTED") && reason().isEmpty();
    }

    /** Reports whether the node refuses one sequence only. */
    boolean isAboutSequence(Query query) {
        return query.ofSequence() && !reason().isEmpty() && !code().equals("WRONGNODE");
    }

    /** Reports whether neither another node nor a later time would help. */
    boolean isFinal(Query query) {
        boolean ofSequence = isAboutSequence(query) && (FINAL.contains(reason()) || !code().equals("NOTREADY"));
        return query.perLine() > 0 && (ofSequence || Set.of("ERR", "NOPERM").contains(code()));
    }
}
