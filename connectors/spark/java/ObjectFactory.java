/**
 * Calls of one constructor with any number of arguments up to seven.
 *
 * py4j picks the method by the number of parameters. An array of arguments would take three more calls over py4j.
 *
 * It relies on nothing of Spark's.
 */
public class ObjectFactory {
    private final java.lang.reflect.Constructor constructor;

    public ObjectFactory(java.lang.reflect.Constructor constructor) {
        this.constructor = constructor;
    }

    public Object make() throws Exception {
        return constructor.newInstance(new Object[] {});
    }

    public Object make(Object a0) throws Exception {
        return constructor.newInstance(new Object[] {a0});
    }

    public Object make(Object a0, Object a1) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1});
    }

    public Object make(Object a0, Object a1, Object a2) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1, a2});
    }

    public Object make(Object a0, Object a1, Object a2, Object a3) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1, a2, a3});
    }

    public Object make(Object a0, Object a1, Object a2, Object a3, Object a4) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1, a2, a3, a4});
    }

    public Object make(Object a0, Object a1, Object a2, Object a3, Object a4, Object a5) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1, a2, a3, a4, a5});
    }

    public Object make(Object a0, Object a1, Object a2, Object a3, Object a4, Object a5, Object a6) throws Exception {
        return constructor.newInstance(new Object[] {a0, a1, a2, a3, a4, a5, a6});
    }
}
