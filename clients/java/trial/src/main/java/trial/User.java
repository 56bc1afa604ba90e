package trial;

import io.github.flaked.hibernate.FlakedId;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity(name = "users")
public class User {
    @Id
    @FlakedId(client = "second")
    public Long id;
}
