import org.apache.spark.sql.Column;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Condition that the hash of some columns is an item of a bloom filter in Spark's binary form.
 *
 * The filter is a scalar subquery of one local row, since a literal would be written out in every text of the plan. Its
 * expressions are made by class: SQL has no might_contain, and a session may redefine the function xxhash64.
 *
 * It relies on BloomFilterMightContain and XxHash64.
 */
public class BloomTest {
    private final SparkSession session;
    private final byte[] bloom;
    private final String columns;
    private final long seed;

    /**
     * Columns are SQL expressions with line feeds between them.
     */
    public BloomTest(SparkSession session, byte[] bloom, String columns, Number seed) {
        this.session = session;
        this.bloom = bloom;
        this.columns = columns;
        this.seed = seed.longValue();
    }

    public Column column() {
        java.util.ArrayList keys = new java.util.ArrayList();
        String[] each = columns.split("\n");
        for (int at = 0; at < each.length; at++) {
            keys.add(expression(functions.expr(each[at])));
        }
        StructType schema = new StructType(new StructField[] {
            DataTypes.createStructField("bloom", DataTypes.BinaryType, true)});
        java.util.ArrayList rows = new java.util.ArrayList();
        rows.add(RowFactory.create(new Object[] {bloom}));
        Expression filter = expression(session.createDataFrame(rows, schema).scalar());
        return ExpressionUtils$.MODULE$.column(new BloomFilterMightContain(filter,
            new XxHash64(scala.jdk.javaapi.CollectionConverters.asScala(keys).toSeq(), seed)));
    }

    private static Expression expression(Column column) {
        return ExpressionUtils$.MODULE$.expression(column);
    }
}
