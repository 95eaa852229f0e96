/** Test of a block of Spark's block manager for being one of a broadcast. It relies on BlockId. */
public class BroadcastBlocks extends scala.runtime.AbstractFunction1 {
    public Object apply(Object block) {
        return Boolean.valueOf(((org.apache.spark.storage.BlockId) block).isBroadcast());
    }
}
