import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.NewInstance;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * What Delta's list of the files of a scan depends on: the version of the table, the conditions, and the confs.
 *
 * Conditions are compared without the ids of columns. One that Delta does not use, since it has a subquery or is not
 * deterministic, counts as any other such one. Delta evaluates conditions on partitions when it lists files, and what
 * a function of a user returns may depend on more than its arguments: such a scan has no key.
 */
public class ScanKey {
    private static final String NOT_USED = "not used";
    private static final String SPARKS = "org.apache.spark.";
    private static final int TEXT = 64;

    private ScanKey() {}

    /**
     * The key; null for a scan whose list may be another one next time.
     */
    static Object of(Snapshot snapshot, Seq conditions, String confs) {
        if (snapshot.version() < 0) {
            return null;
        }
        java.util.ArrayList named = new java.util.ArrayList();
        scala.collection.Iterator each = conditions.iterator();
        while (each.hasNext()) {
            Expression condition = (Expression) each.next();
            boolean isUsed = isUsed(condition);
            if (isUsed && !isRepeatable(condition)) {
                return null;
            }
            named.add(isUsed ? (Object) PrunedFileIndex.named(condition) : NOT_USED);
        }
        return java.util.Arrays.asList(new Object[] {DeltaFileLists.identity(snapshot), confs, named});
    }

    private static boolean isUsed(Expression condition) {
        return condition.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(condition);
    }

    private static boolean isRepeatable(Expression condition) {
        boolean isForeign = !condition.getClass().getName().startsWith(SPARKS)
            || condition instanceof UserDefinedExpression || condition instanceof Invoke
            || condition instanceof NewInstance || condition instanceof StaticInvoke
            && !((StaticInvoke) condition).staticObject().getName().startsWith(SPARKS);
        // A variable of a lambda has an id of its own in each query, so that its list would never be found again.
        boolean isNew = condition instanceof NamedLambdaVariable;
        // A column of a file's metadata may have the name of a column of the table.
        boolean isOfFile = condition instanceof AttributeReference
            && MetadataAttribute$.MODULE$.isValid(((AttributeReference) condition).metadata());
        if (isForeign || isNew || isOfFile) {
            return false;
        }
        scala.collection.Iterator children = condition.children().iterator();
        while (children.hasNext()) {
            if (!isRepeatable((Expression) children.next())) {
                return false;
            }
        }
        return true;
    }

    /**
     * The memory of conditions, counted in objects of about the size of a file's.
     */
    static long weight(Seq conditions) {
        long sum = 0;
        scala.collection.Iterator each = conditions.iterator();
        while (each.hasNext()) {
            sum += weight((Expression) each.next());
        }
        return sum;
    }

    private static long weight(Expression condition) {
        long own = condition instanceof InSet ? ((InSet) condition).hset().size()
            : condition instanceof Literal ? weight(((Literal) condition).value()) : 1L;
        return own + weight((Seq) condition.children());
    }

    private static long weight(Object value) {
        return value instanceof UTF8String ? 1L + ((UTF8String) value).numBytes() / TEXT
            : value instanceof byte[] ? 1L + ((byte[]) value).length / TEXT
            : value instanceof ArrayData ? 1L + ((ArrayData) value).numElements()
            : value instanceof MapData ? 1L + ((MapData) value).numElements() : 1L;
    }
}
