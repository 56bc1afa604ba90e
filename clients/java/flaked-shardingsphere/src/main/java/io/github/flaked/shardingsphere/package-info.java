/** Keys of ShardingSphere-JDBC from flaked nodes. */
package io.github.flaked.shardingsphere;
