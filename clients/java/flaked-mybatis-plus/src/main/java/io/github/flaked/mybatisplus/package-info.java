/** IDs of MyBatis-Plus from flaked nodes. */
package io.github.flaked.mybatisplus;
