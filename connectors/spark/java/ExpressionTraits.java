import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NumericEvalContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Traits of the expressions of a node that Spark's JSON does not show: two letters for each expression and its
 * children, parents first, in the order of the JSON. The first is the mode: A for errors under ANSI, T for NULL in the
 * place of an error, L for the rules without ANSI, - without a mode. The second is the class of the type.
 *
 * It relies on EvalMode and NumericEvalContext being parameters of expressions, or a flag with one of two names.
 */
public class ExpressionTraits {
    private static final int DIGITS_OF_ANY_SUM = 28;

    static String of(LogicalPlan node) {
        StringBuilder text = new StringBuilder();
        scala.collection.Iterator expressions = node.expressions().iterator();
        while (expressions.hasNext()) {
            add(text, (Expression) expressions.next());
        }
        return text.length() == 0 ? "-" : text.toString();
    }

    private static void add(StringBuilder text, Expression expression) {
        text.append(mode(expression)).append(type(expression));
        scala.collection.Iterator children = expression.children().iterator();
        while (children.hasNext()) {
            add(text, (Expression) children.next());
        }
    }

    private static char mode(Expression expression) {
        scala.Product product = (scala.Product) expression;
        for (int at = 0; at < product.productArity(); at++) {
            Object element = product.productElement(at);
            if (element instanceof NumericEvalContext) {
                element = ((NumericEvalContext) element).evalMode();
            }
            if (element instanceof scala.Enumeration.Value) {
                String name = element.toString();
                if (name.equals("ANSI") || name.equals("TRY") || name.equals("LEGACY")) {
                    return name.charAt(0);
                }
            }
            if (element instanceof Boolean && isFlag(product.productElementName(at))) {
                return ((Boolean) element).booleanValue() ? 'A' : 'L';
            }
        }
        return '-';
    }

    private static boolean isFlag(String name) {
        return name.equals("failOnError") || name.equals("ansiEnabled");
    }

    private static char type(Expression expression) {
        try {
            return type(expression.dataType());
        } catch (Exception withoutType) {
            // Parts of a window's definition have none.
            return '-';
        }
    }

    private static char type(DataType type) {
        if (type instanceof DecimalType) {
            int digits = ((DecimalType) type).precision();
            return digits <= DIGITS_OF_ANY_SUM ? 'n' : digits < DecimalType.MAX_PRECISION() ? 'm' : 'N';
        }
        if (type instanceof DoubleType || type instanceof FloatType) {
            return 'f';
        }
        if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
            || type instanceof LongType) {
            return 'i';
        }
        if (type instanceof TimestampType || type instanceof TimestampNTZType) {
            return 't';
        }
        return type instanceof StringType ? 's' : type instanceof DateType ? 'd' : type instanceof BooleanType ? 'b'
            : 'o';
    }
}
