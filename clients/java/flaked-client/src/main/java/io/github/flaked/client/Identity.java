package io.github.flaked.client;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which cluster a client wants, for its life: an address may be given to a node of another one. */
final class Identity {
    private static final Pattern NAME = Pattern.compile("(?:^|.* )cluster=(\\S+).*");
    private static final Pattern UUID = Pattern.compile("(?:^|.* )cluster_uuid=(\\S+).*");

    private final String configured; // a name or a UUID, or null
    private String name; // of the cluster that the first node belongs to
    private String uuid; // null until a node has answered
    private String firstNode;
    private volatile String wrong; // the addresses belong to two clusters: the text of the error of all calls

    Identity(String configured) {
        this.configured = configured;
    }

    /** Reports whether the first node that answers decides. */
    synchronized boolean isUnknown() {
        return uuid == null && configured == null;
    }

    /** Returns the request with which each connection begins, after AUTH. */
    synchronized String request() {
        String wanted = uuid == null ? configured : uuid;
        return wanted == null ? "WORKER" : "WORKER " + wanted;
    }

    /** Returns the exception of all calls if the addresses belong to two clusters, else null. */
    RefusedException error() {
        String text = wrong;
        return text == null ? null : RefusedException.wrongNode("", text);
    }

    /**
     * Takes the reply of a node, and returns what is wrong, or null.
     *
     * @param comparing the addresses of the client are compared
     */
    synchronized Exception check(String address, String line, boolean comparing) {
        boolean refused = line.startsWith("-WRONGNODE");
        if (line.startsWith("-") && !refused && !line.startsWith("-ERR")) {
            return new RefusedException(address, line.substring(1).replaceAll("\\p{Cntrl}", "?"));
        }
        Matcher itsName = NAME.matcher(line);
        Matcher itsUuid = UUID.matcher(line);
        if (!itsName.matches() || !itsUuid.matches()) {
            return new IOException(address + " did not say its cluster. Check the address and the port");
        }
        String other = itsUuid.group(1);
        if (other.equals("none")) {
            return new IOException(address + " has not joined its cluster yet. Ask it again in a moment");
        }
        if (!refused && uuid == null) {
            name = itsName.group(1);
            uuid = other;
            firstNode = address;
        }
        if (!refused && uuid.equals(other)) {
            return null;
        }
        String its = itsName.group(1) + " (" + other + ")";
        String ours = uuid == null ? configured : name + " (" + uuid + ")";
        if (comparing && uuid != null) {
            wrong = "the addresses belong to two clusters: " + firstNode + " to " + ours + " and " + address + " to "
                    + its + ". Give nodes of one cluster, or name it with cluster";
        }
        return RefusedException.wrongNode(address, address + " belongs to cluster " + its + ", not to " + ours);
    }
}
