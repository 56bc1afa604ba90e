package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.github.flaked.client.FlakedClient;
import java.util.TreeSet;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;

/**
 * Makes the generator of MyBatis-Plus from the client of flaked-spring-boot-starter, unless the program has one. If the
 * program has several clients, flaked.mybatis-plus.client names the bean, or one of them is primary.
 */
@AutoConfiguration(
        afterName = "io.github.flaked.spring.FlakedAutoConfiguration",
        beforeName = {
            "com.baomidou.mybatisplus.autoconfigure.IdentifierGeneratorAutoConfiguration",
            "com.baomidou.mybatisplus.autoconfigure.MybatisPlusAutoConfiguration"
        })
@ConditionalOnBean(FlakedClient.class)
public class FlakedMybatisPlusAutoConfiguration {
    private static final String CLIENT = "flaked.mybatis-plus.client";

    @Bean
    @ConditionalOnMissingBean
    IdentifierGenerator flakedIdentifierGenerator(ListableBeanFactory beans, Environment environment) {
        String name = environment.getProperty(CLIENT);
        var names = new TreeSet<>(beans.getBeansOfType(FlakedClient.class).keySet());
        if (name != null) {
            if (!names.contains(name)) {
                throw new IllegalStateException(
                        CLIENT + " is " + name + ", and there is no FlakedClient of that name. There are " + names);
            }
            return new FlakedIdentifierGenerator(beans.getBean(name, FlakedClient.class));
        }
        FlakedClient only = beans.getBeanProvider(FlakedClient.class).getIfUnique();
        if (only == null) {
            throw new IllegalStateException("MyBatis-Plus has several clients to choose from: " + names + ". Set "
                    + CLIENT + " to one of them, or make one @Primary");
        }
        return new FlakedIdentifierGenerator(only);
    }

    // MyBatis-Plus knows the entities of all mappers when the beans are made.
    @Bean
    SmartInitializingSingleton flakedKeyCheck(ObjectProvider<IdentifierGenerator> generators) {
        return () -> generators.stream()
                .filter(FlakedIdentifierGenerator.class::isInstance)
                .map(FlakedIdentifierGenerator.class::cast)
                .forEach(FlakedIdentifierGenerator::checkKeys);
    }
}
