package trial;

import io.github.flaked.client.FlakedClient;
import java.util.HashSet;
import java.util.Set;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** Inserts rows with IDs of two clients, and prints how many differ. It serves /actuator until it is killed. */
@SpringBootApplication
public class Trial {
    @Bean
    FlakedClient first(@Value("${node}") String node) {
        return FlakedClient.builder().addresses(node).prefetch(100).build();
    }

    @Bean
    FlakedClient second(@Value("${node}") String node) {
        return FlakedClient.builder().addresses(node).build();
    }

    public static void main(String[] arguments) {
        var context = SpringApplication.run(Trial.class, arguments);
        Set<Long> ids = new HashSet<>();
        for (int i = 0; i < 50; i++) {
            ids.add(context.getBean(Orders.class).save(new Order()).id);
            ids.add(context.getBean(Users.class).save(new User()).id);
        }
        System.out.println("TRIAL " + ids.size() + " different IDs in 100 rows");
    }
}
