package io.github.flaked.mybatisplus.narrow;

import com.baomidou.mybatisplus.annotation.IdType;
import com.baomidou.mybatisplus.annotation.TableId;
import com.baomidou.mybatisplus.annotation.TableName;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;

/** A table whose key does not hold an ID. */
public interface NarrowMapper extends BaseMapper<NarrowMapper.Row> {
    @TableName("narrow")
    class Row {
        @TableId(type = IdType.ASSIGN_ID)
        private Integer id;

        public Integer getId() {
            return id;
        }

        public void setId(Integer id) {
            this.id = id;
        }
    }
}
