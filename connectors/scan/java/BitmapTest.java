import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayItem;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.ShiftRight;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnixDate;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;

/**
 * Condition that a column of whole numbers or dates has a bit in a bitmap of words of 64 bits.
 *
 * The words are a literal array in Spark's binary form, whose text in plans is short, and whose items are read without
 * a subquery. Its expressions are made by class, since a session may redefine functions. No step of them overflows:
 * shifted by six bits, the difference of two keys fits their type, an index beyond an int wraps and at worst finds
 * another key's bit, and an index outside of the array gives NULL.
 *
 * It relies on GetArrayItem, which takes an index of either width, and on UnsafeArrayData.
 */
public class BitmapTest {
    private final String column;
    private final String type;
    private final byte[] octets;
    private final String base;

    /**
     * The column is an SQL expression of Spark's type int, bigint or date; the words are little-endian, and the first
     * bit stands for the number in the text base, a multiple of 64.
     */
    public BitmapTest(String column, String type, byte[] octets, String base) {
        this.column = column;
        this.type = type;
        this.octets = octets;
        this.base = base;
    }

    public Column column() {
        boolean isLong = "bigint".equals(type);
        Expression key = expression(functions.expr(column));
        if ("date".equals(type)) {
            key = new UnixDate(key);
        }
        long first = Long.parseLong(base) >> 6;
        Expression start = isLong
            ? new Literal(Long.valueOf(first), DataTypes.LongType)
            : new Literal(Integer.valueOf((int) first), DataTypes.IntegerType);
        Expression index = new Subtract(new ShiftRight(key, number(6)), start);
        Expression word = new GetArrayItem(words(), index, false);
        // A shift of a word uses the low six bits of an int.
        Expression place = isLong ? low(key) : key;
        Expression bit = new BitwiseAnd(new ShiftRight(word, place), new Literal(Long.valueOf(1L), DataTypes.LongType));
        return ExpressionUtils$.MODULE$.column(new EqualTo(bit, new Literal(Long.valueOf(1L), DataTypes.LongType)));
    }

    private Literal words() {
        java.nio.ByteBuffer buffer = java.nio.ByteBuffer.wrap(octets).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        long[] words = new long[octets.length / 8];
        buffer.asLongBuffer().get(words);
        return new Literal(UnsafeArrayData.fromPrimitiveArray(words), new ArrayType(DataTypes.LongType, false));
    }

    private static Expression low(Expression key) {
        Expression six = new BitwiseAnd(key, new Literal(Long.valueOf(63L), DataTypes.LongType));
        return expression(ExpressionUtils$.MODULE$.column(six).cast(DataTypes.IntegerType));
    }

    private static Literal number(int value) {
        return new Literal(Integer.valueOf(value), DataTypes.IntegerType);
    }

    private static Expression expression(Column column) {
        return ExpressionUtils$.MODULE$.expression(column);
    }
}
