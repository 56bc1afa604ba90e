package trial.slice;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.hibernate.FlakedId;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.data.jpa.test.autoconfigure.DataJpaTest;

/** A test that starts JPA only: the starter makes its client, on the node of the script. */
@DataJpaTest(properties = "flaked.addresses=${node}")
class SliceTest {
    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    @Entity(name = "notes")
    static class Note {
        @Id
        @FlakedId
        Long id;
    }

    @Test
    void anEntityGetsItsId(@Autowired EntityManager entities) {
        Note note = new Note();
        entities.persist(note);
        assertTrue(note.id > 0);
    }
}
