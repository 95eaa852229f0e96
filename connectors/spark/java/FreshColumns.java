import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * New column ids for a pruned scan, by which the report distinguishes it from the query's original scan. It walks no
 * plan: a leaf is given, and later the plan that takes its place. Where the ids are to stay, the leaf itself is used.
 *
 * renamed() puts a projection above a plan over the new ids, which gives its columns the ids that the query uses. A
 * projection that changes only ids, in their order, has a tag, by which OwnColumns finds it. A plan that has all
 * columns in their order and with their ids needs none.
 *
 * It relies on LogicalRelation.newInstance() and on tags of tree nodes.
 */
public class FreshColumns {
    private final org.apache.spark.sql.execution.datasources.LogicalRelation known;
    private final LogicalPlan fresh;

    public FreshColumns(org.apache.spark.sql.execution.datasources.LogicalRelation leaf, boolean keepsIds) {
        known = leaf;
        fresh = keepsIds ? leaf : (LogicalPlan) leaf.newInstance();
    }

    public LogicalPlan leaf() {
        return fresh;
    }

    public LogicalPlan renamed(LogicalPlan plan) {
        java.util.ArrayList nothing = new java.util.ArrayList();
        java.util.ArrayList columns = new java.util.ArrayList();
        scala.collection.Iterator from = fresh.output().iterator();
        scala.collection.Iterator to = known.output().iterator();
        scala.collection.Iterator below = plan.output().iterator();
        boolean isOrdered = known.output().size() == plan.output().size();
        boolean isSame = isOrdered;
        while (to.hasNext()) {
            Attribute column = (Attribute) to.next();
            Expression value = value((Attribute) from.next(), plan);
            isOrdered = isOrdered && value instanceof Attribute
                && ((Attribute) value).exprId().equals(((Attribute) below.next()).exprId());
            boolean isItself = value instanceof Attribute && ((Attribute) value).exprId().equals(column.exprId());
            isSame = isSame && isItself && isOrdered;
            columns.add(isItself ? value : new Alias(value, column.name(), column.exprId(), column.qualifier(),
                scala.Option.empty(), SameColumns.sequence(nothing)));
        }
        if (isSame) {
            return plan;
        }
        Project renamed = new Project(SameColumns.sequence(columns), plan);
        if (isOrdered) {
            OwnColumns.tag(renamed);
        }
        return renamed;
    }

    private static Expression value(Attribute wanted, LogicalPlan plan) {
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
