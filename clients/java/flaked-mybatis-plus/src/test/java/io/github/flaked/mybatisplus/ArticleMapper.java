package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;

interface ArticleMapper extends BaseMapper<Article>, ApplicationTest.Scanned {}
