package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.github.flaked.client.FlakedClient;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Bean;

/** Makes the generator of MyBatis-Plus from the client of flaked-spring-boot-starter, unless the program has one. */
@AutoConfiguration(
        afterName = "io.github.flaked.spring.FlakedAutoConfiguration",
        beforeName = {
            "com.baomidou.mybatisplus.autoconfigure.IdentifierGeneratorAutoConfiguration",
            "com.baomidou.mybatisplus.autoconfigure.MybatisPlusAutoConfiguration"
        })
@ConditionalOnSingleCandidate(FlakedClient.class)
public class FlakedMybatisPlusAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    IdentifierGenerator flakedIdentifierGenerator(FlakedClient client) {
        return new FlakedIdentifierGenerator(client);
    }
}
