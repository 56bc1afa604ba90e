package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import org.apache.ibatis.annotations.Mapper;

@Mapper
interface ArticleMapper extends BaseMapper<Article> {}
