package trial;

import io.github.flaked.hibernate.FlakedId;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity(name = "orders")
public class Order {
    @Id
    @FlakedId(client = "first")
    public Long id;
}
