import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * The columns of a leaf over the plan that takes its place: in their order, with their ids, found by these or by name.
 * A plan that has them so is left as it is, which is every plan over the relation of the leaf itself.
 */
public class LeafColumns {
    private final LogicalPlan leaf;
    private final LogicalPlan plan;

    public LeafColumns(LogicalPlan leaf, LogicalPlan plan) {
        this.leaf = leaf;
        this.plan = plan;
    }

    public LogicalPlan plan() {
        java.util.ArrayList nothing = new java.util.ArrayList();
        java.util.ArrayList columns = new java.util.ArrayList();
        scala.collection.Iterator wanted = leaf.output().iterator();
        scala.collection.Iterator below = plan.output().iterator();
        boolean isSame = leaf.output().size() == plan.output().size();
        while (wanted.hasNext()) {
            Attribute column = (Attribute) wanted.next();
            Expression value = value(column);
            boolean isItself = value instanceof Attribute && ((Attribute) value).exprId().equals(column.exprId());
            isSame = isSame && isItself && ((Attribute) below.next()).exprId().equals(column.exprId());
            columns.add(isItself ? value : new Alias(value, column.name(), column.exprId(), column.qualifier(),
                scala.Option.empty(), SameColumns.sequence(nothing)));
        }
        return isSame ? plan : new Project(SameColumns.sequence(columns), plan);
    }

    private Expression value(Attribute wanted) {
        if (plan.outputSet().contains(wanted)) {
            return wanted;
        }
        scala.collection.Iterator found = plan.output().iterator();
        while (found.hasNext()) {
            Attribute column = (Attribute) found.next();
            if (column.name().equals(wanted.name())) {
                return column;
            }
        }
        return new Literal(null, wanted.dataType());
    }
}
